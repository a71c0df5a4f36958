//! Test beds and studies as users and scripts operate them, with `plimsoll testbed`.

mod beds;
mod common;
mod ends;
mod kinds;
mod on;
mod outages;
mod qemu;
mod server_study;
mod smb;
mod studies;
