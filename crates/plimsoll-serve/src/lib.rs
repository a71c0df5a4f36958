//! Results browser over HTTP: pages on the results below a results root, a JSON interface with the same data, and runs
//! in progress with metrics for Prometheus.
//!
//! [`Server::bind`] reads the results and opens the socket, [`Server::run`] serves until stopped. The results
//! directories are authoritative: the [`index`] is an in-memory cache.
//!
//! # Access control
//! Every request passes [`guard`] first. A request must name a host of this server, which excludes foreign pages whose
//! host name resolves to the server's address (DNS rebinding); must have the token if a token is set; and may change
//! files only if the request comes from one of the server's own pages or from a program. Names in addresses are looked
//! up in the index before they become paths.
//!
//! # Modules
//! `server` → `app` (routes) → `api`, `metrics` → `pages` → `live` (event stream) → `state` (shared by all requests) →
//! `guard`, `index` (`filter` is its query, `column` its order), `abandoned` (results of killed runs) → `stamp`, `problem` (errors as
//! responses) → `layout`, `address`, `assets`. Each module of the server only uses modules that are later in this list.

mod abandoned;
mod address;
mod api;
mod app;
mod assets;
pub mod column;
pub mod filter;
pub mod guard;
pub mod index;
mod layout;
mod live;
mod metrics;
mod pages;
mod problem;
mod server;
mod stamp;
mod state;

pub use server::{ServeError, Server, Settings, routes};
