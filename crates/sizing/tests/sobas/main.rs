//! Laws of the SOBAS variants, and of yielding controllers, on paths scripted by a fluid model.

mod adaptive;
mod fluid;
mod live;
mod paper;
mod rledbat;
mod shared;
mod table;
