//! Laws of the SOBAS variants, on paths scripted by a fluid model.

mod adaptive;
mod fluid;
mod live;
mod paper;
