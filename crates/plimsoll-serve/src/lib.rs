//! The results browser: pages on a results root, a JSON interface with the same data, runs in
//! progress, and metrics of them for Prometheus, over HTTP.
//!
//! [`Server::bind`] reads the results and opens the socket, [`Server::run`] serves until it is stopped. The
//! results directories are authoritative: the [`index`] is a cache of them, in memory.
//!
//! # Access control
//! Every request passes [`guard`] first: it must name a host of this server (which excludes pages
//! elsewhere whose name was made to resolve to this address), have the token if one is set, and may
//! change something only if it comes from one of our own pages or from a program. Names in addresses
//! are looked up in the index before they become paths.
//!
//! # Modules
//! `server` → `app` (routes) → `guard`, `pages`, `api`, `live` (event stream), `metrics` → `state`
//! (shared by all requests) → `index` (`filter` is its query), `abandoned` (results of killed
//! runs) → `problem` (errors as responses) → `layout`, `address`, `assets`. Each uses those after it.

mod abandoned;
mod address;
mod api;
mod app;
mod assets;
pub mod filter;
pub mod guard;
pub mod index;
mod layout;
mod live;
mod metrics;
mod pages;
mod problem;
mod server;
mod state;

pub use server::{ServeError, Server, Settings, routes};
