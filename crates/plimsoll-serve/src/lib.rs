//! The results browser: pages on a results root, a JSON interface with the same data, runs in
//! progress as they go on, and metrics of them for Prometheus, over HTTP.
//!
//! [`Server::bind`] opens the index and the socket, [`Server::run`] serves until it is told to
//! stop. The results directories are the truth: the [`index`] only says where to look.
//!
//! # Who may do what
//! Everything that comes in passes [`guard`] first: a request names a host that this server is
//! reached by (a page elsewhere whose name was made to point here does not), carries the token if
//! one is set, and changes something only if it comes from one of our own pages or from no page at
//! all. Names in addresses are looked up in the index and never become paths before that.

mod abandoned;
mod api;
mod app;
mod assets;
pub mod filter;
pub mod guard;
pub mod index;
mod live;
mod metrics;
mod pages;
mod problem;
mod server;

pub use server::{ServeError, Server, Settings};
