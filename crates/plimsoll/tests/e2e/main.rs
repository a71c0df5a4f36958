//! The program as people and scripts use it, from its command line to the files it leaves.
//!
//! All of it is one program, since linking one for each file costs minutes and gigabytes.
//! `launchers.rs` is another, built once more with each MPI library.

mod browser;
mod builtins;
mod clean;
mod cleanup;
mod cli;
mod client_cache;
mod command_line;
mod common;
mod compare;
mod contents;
mod curve;
mod curve_nfs;
mod disclosure;
mod docs;
mod find;
mod flowops;
mod foreign;
mod full_disk;
mod hooks;
mod idle_settings;
mod import;
mod install;
mod make;
mod md;
mod md_caches;
mod md_model;
mod mixes;
mod nfs;
mod nfs4;
mod nfs_servers;
mod nfs_table;
mod old_profiles;
mod open_loop;
mod output;
mod percentiles;
mod profile;
mod ran_out;
mod ranks;
mod results_before_cleanup;
mod results_locations;
mod results_management;
mod reused_files;
mod run;
mod serve;
mod signals;
mod stalls;
mod study;
mod sut;
mod terminal;
mod unusual_paths;
mod virtual_time;
mod wan;
mod worker_ends;
