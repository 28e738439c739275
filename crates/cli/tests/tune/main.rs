//! `sweetspot tune` on a download over loopback by a program that knows nothing of it.

mod download;
mod laws;
