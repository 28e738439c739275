//! `sweetspot tune` on a download over loopback by a program that knows nothing of it.

mod containers;
mod daemon;
mod download;
mod emulated;
mod inside;
mod laws;
mod unprivileged;
mod upload;
