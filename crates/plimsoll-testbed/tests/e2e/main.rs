//! Tests of test beds and studies through the command line `plimsoll testbed`, as users and scripts call it.

mod beds;
mod common;
mod ends;
mod kinds;
mod outages;
mod qemu;
mod server_study;
mod smb;
mod studies;
