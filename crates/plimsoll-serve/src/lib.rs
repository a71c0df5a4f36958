//! Results browser over HTTP: pages on a results root, a JSON interface with the same data, runs in progress, and their
//! metrics for Prometheus.
//!
//! [`Server::bind`] reads the results and opens the socket, [`Server::run`] serves until stopped. The results
//! directories are authoritative: the [`index`] is an in-memory cache.
//!
//! # Access control
//! Every request passes [`guard`] first. The request must name a host of this server, which excludes foreign pages
//! whose host name resolves to this address (DNS rebinding); must have the token if one is set; and may only change
//! something if it comes from one of the server's own pages or from a program. Names in addresses are looked up in the
//! index before they become paths.
//!
//! # Modules
//! `server` → `app` (routes) → `guard`, `pages`, `api`, `live` (event stream), `metrics` → `state` (shared by all
//! requests) → `index` (`filter` is its query), `abandoned` (results of killed runs) → `problem` (errors as responses)
//! → `layout`, `address`, `assets`. Each module only uses later modules of this list.

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
