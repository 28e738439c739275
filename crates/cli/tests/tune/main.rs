//! `sweetspot tune` on a loopback download by a program that is unaware of it.

mod clamps;
mod containers;
mod daemon;
mod diagnosed;
mod download;
mod emulated;
mod forbidden;
mod inside;
mod killed;
mod laws;
mod requirements;
mod unlimited;
mod unprivileged;
mod upload;
