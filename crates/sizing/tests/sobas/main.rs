//! Laws of the SOBAS variants, and of yielding controllers, on paths scripted by a fluid model.

mod adaptive;
mod climb;
mod fluid;
mod live;
mod paced;
mod paper;
mod rledbat;
mod script;
mod shared;
mod table;
