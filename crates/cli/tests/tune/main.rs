//! `sweetspot tune` on a download over loopback by a program that knows nothing of it.

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
