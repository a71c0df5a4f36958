//! Execution of models.

use loom::thread::{Builder, JoinHandle};

/// Stack size of a thread in words: a lane with its loop and workers needs more than loom's default.
const STACK_WORDS: usize = 0x1_0000;

/// Executes `model` in every order of its threads with at most `preemptions` switches away from a thread that could
/// proceed; `LOOM_MAX_PREEMPTIONS` raises the number. The model begins on a new thread and may start three more
/// threads.
///
/// # Panics
/// If an execution panics, deadlocks, or has more than 20 000 branches.
pub fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    let wanted = builder.preemption_bound.unwrap_or(0);
    builder.preemption_bound = Some(preemptions.max(wanted));
    builder.max_branches = 20_000;
    let model = std::sync::Arc::new(model);
    builder.check(move || {
        let model = model.clone();
        spawn(move || model())
            .join()
            .expect("a model ends at its first panic");
    });
}

/// Starts a thread of a model.
///
/// # Panics
/// If the model has too many threads.
pub fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let builder = Builder::new().stack_size(STACK_WORDS);
    builder.spawn(body).expect("a model has few threads")
}
