//! Errors as responses.

use crate::layout::error_page;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use plimsoll_results::ResultsError;

/// Failure of a request: HTTP status and message.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    /// Cause of the failure of the request, in a sentence for the user.
    pub(crate) message: String,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, message: impl std::fmt::Display) -> Self {
        let message = message.to_string();
        Self { status, message }
    }

    /// Problem with status 400: the request is invalid.
    pub(crate) fn bad(message: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// Problem with status 404: the requested results do not exist.
    pub(crate) fn missing(message: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// Problem with status 409: the state of the results does not permit the request.
    pub(crate) fn conflict(message: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    /// Problem with status 500: the server failed.
    pub(crate) fn internal(message: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// Response for programs: a JSON object whose field `error` is the message.
    pub(crate) fn json(&self) -> Response {
        let body = serde_json::json!({ "error": self.message }).to_string() + "\n";
        let kind = [(header::CONTENT_TYPE, "application/json")];
        (self.status, kind, body).into_response()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        (self.status, error_page(self.status, &self.message)).into_response()
    }
}

impl From<ResultsError> for Problem {
    fn from(e: ResultsError) -> Self {
        match e {
            ResultsError::None { .. } => Self::missing(e),
            ResultsError::InUse { .. } | ResultsError::Foreign { .. } => Self::conflict(e),
            _ => Self::internal(e),
        }
    }
}
