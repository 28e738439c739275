//! Laws of both SOBAS variants, on paths scripted by a fluid model.

mod adaptive;
mod fluid;
mod paper;
mod shared;
