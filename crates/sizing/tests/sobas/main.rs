//! Laws of the SOBAS variants, and of what gives way, on paths scripted by a fluid model.

mod adaptive;
mod fluid;
mod live;
mod paper;
mod rledbat;
mod shared;
mod table;
