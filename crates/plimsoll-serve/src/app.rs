//! Routes of the server.

use crate::problem::Problem;
use crate::state::Shared;
use crate::{api, assets, guard, live, metrics, pages};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};

/// Maximum size in bytes of a form that a request sends.
const MAX_FORM_BYTES: usize = 1 << 16;

/// Routes every address; all requests pass the guard first.
pub(crate) fn router(app: &Shared) -> Router {
    Router::new()
        .route("/", get(pages::list::show))
        .route("/results/{name}", get(pages::result::show))
        .route("/results/{name}/runs/{*run}", get(pages::result::show_run))
        .route("/results/{name}/annotations", post(pages::result::annotate))
        .route(
            "/results/{name}/delete",
            get(pages::delete::confirm_page).post(pages::delete::execute),
        )
        .route("/compare", get(pages::compare::show))
        .route("/live", get(pages::live::list))
        .route("/live/{id}", get(pages::live::show))
        .route("/live/{id}/events", get(live::events))
        .route(
            guard::LOGIN,
            get(pages::login::show).post(pages::login::check),
        )
        .route("/metrics", get(metrics::show))
        .nest("/api/v1", api::router())
        .route(assets::STYLE_PATH, get(assets::style))
        .route(assets::CHARTS_PATH, get(assets::charts))
        .route(assets::BROWSER_PATH, get(assets::browser))
        .fallback(async || Problem::missing("There is no such page."))
        .layer(DefaultBodyLimit::max(MAX_FORM_BYTES))
        .layer(from_fn_with_state(app.guard.clone(), guard::check))
        .with_state(app.clone())
}
