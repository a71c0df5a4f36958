//! All executions of a few processes that claim a directory: the code that runs execute, on directories that are maps
//! in memory.
//!
//! A step is the lookup of an operation's directories, or the operation itself on the directories found, as over NFS.
//! Between two steps any other process may make a step or end, and the network may repeat a request. Equal states are
//! explored once.

use super::{
    ClaimDir, ClaimId, Departure, Levels, NotClaimed, OwnerProcess, OwnerState, RemoteOwner,
    depart, release, take, tell,
};
use plimsoll_target::OpError;
use rustix::io::Errno;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::future::{Future, pending};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Identity of a directory, which a rename keeps: the process that made the directory, and a number.
type Inode = (u32, u32);

/// The directory above the guarded directory.
const TOP: Inode = (u32::MAX, 0);

/// The guarded directory that exists before the first step.
const GUARD: Inode = (u32::MAX, 1);

const GUARD_NAME: &str = "guard";

/// Directories, each with its entries.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Dirs(BTreeMap<Inode, BTreeMap<String, Inode>>);

/// A request whose directories have been looked up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Request {
    List(Inode),
    Make(Inode, String, Inode),
    Rename(Inode, String, Inode, String),
    Remove(Inode, String),
}

/// Next step of a process, for whose answer the process waits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Step {
    /// Looks up the directory of a path.
    LookUp(String),
    Request(Request),
    /// Looks up and lists the directory of a path.
    ListPath(String),
    /// A request that no other process sees.
    Unseen(Request),
    State(u32),
    /// The process has the directory alone from here on.
    Enter,
    Leave,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Answer {
    Dir(Result<Inode, i32>),
    Names(Result<Vec<String>, i32>),
    Done(Result<(), i32>),
    State(OwnerState),
}

impl Dirs {
    fn get(&self, dir: Inode) -> Result<&BTreeMap<String, Inode>, Errno> {
        self.0.get(&dir).ok_or(Errno::STALE)
    }

    /// The directory that a path from the top leads to.
    fn look_up(&self, path: &str) -> Result<Inode, Errno> {
        let mut names = path.split('/').filter(|name| !name.is_empty());
        names.try_fold(TOP, |at, name| self.find(at, name))
    }

    fn find(&self, dir: Inode, name: &str) -> Result<Inode, Errno> {
        self.get(dir)?.get(name).copied().ok_or(Errno::NOENT)
    }

    fn remove(&mut self, dir: Inode, name: &str) -> Result<(), Errno> {
        let inode = self.find(dir, name)?;
        if !self.get(inode)?.is_empty() {
            return Err(Errno::NOTEMPTY);
        }
        self.0.remove(&inode);
        let entries = self.0.get_mut(&dir).expect("the directory was found");
        entries.remove(name);
        Ok(())
    }

    fn execute(&mut self, request: &Request, joins: bool) -> Answer {
        let code = |e: Errno| e.raw_os_error();
        match request {
            Request::List(dir) => {
                let names = self.get(*dir).map(|d| d.keys().cloned().collect());
                Answer::Names(names.map_err(code))
            }
            Request::Make(dir, name, inode) => {
                Answer::Done(self.make(*dir, name, *inode).map_err(code))
            }
            Request::Rename(from, old, to, new) => {
                let done = self.rename((*from, old), (*to, new), joins);
                Answer::Done(done.map_err(code))
            }
            Request::Remove(dir, name) => Answer::Done(self.remove(*dir, name).map_err(code)),
        }
    }

    fn make(&mut self, dir: Inode, name: &str, inode: Inode) -> Result<(), Errno> {
        if self.get(dir)?.contains_key(name) {
            return Err(Errno::EXIST);
        }
        // A repeated request makes another directory.
        let inode = match self.0.contains_key(&inode) {
            true => (inode.0, inode.1 + 1000),
            false => inode,
        };
        self.0.insert(inode, BTreeMap::new());
        let entries = self.0.get_mut(&dir).expect("the directory was found");
        entries.insert(name.into(), inode);
        Ok(())
    }

    fn rename(
        &mut self,
        (from, old): (Inode, &str),
        (to, new): (Inode, &str),
        joins: bool,
    ) -> Result<(), Errno> {
        let inode = self.find(from, old)?;
        match self.find(to, new) {
            Ok(there) if joins => {
                let moved = self.0.remove(&inode).expect("the directory was found");
                let entries = self.0.get_mut(&there).expect("the directory was found");
                entries.extend(moved);
                let entries = self.0.get_mut(&from).expect("the directory was found");
                entries.remove(old);
                return Ok(());
            }
            Ok(there) if !self.get(there)?.is_empty() => return Err(Errno::NOTEMPTY),
            Ok(_) => self.remove(to, new)?,
            Err(Errno::NOENT) => {}
            Err(e) => return Err(e),
        }
        let entries = self.0.get_mut(&from).expect("the directory was found");
        entries.remove(old);
        let entries = self.0.get_mut(&to).expect("the directory was found");
        entries.insert(new.into(), inode);
        Ok(())
    }
}

/// Program that a process executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Program {
    /// Claims, uses and releases the directory.
    Use,
    /// Makes the directory if missing, claims, uses and releases the directory, and removes a directory that a process
    /// made.
    MakeAndRemove,
}

/// Result of the program of a process that was not killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum End {
    Used,
    Refused,
    /// Other processes thwarted every attempt to make or to remove the directory.
    Tired,
    /// An operation returned an error that the program does not handle.
    Failed,
}

/// Operations of a process: recorded answers are replayed, and the first operation without an answer is the next step.
struct Replay<'a> {
    number: u32,
    /// Whether a lookup of a directory that only this process changes is no step.
    is_simple: bool,
    /// The latest directory that this process made in the guarded directory.
    prepared: Inode,
    answers: &'a [Answer],
    at: usize,
    next: &'a RefCell<Option<Step>>,
}

impl Replay<'_> {
    async fn step(&mut self, step: Step) -> Answer {
        if let Some(answer) = self.answers.get(self.at) {
            self.at += 1;
            return answer.clone();
        }
        *self.next.borrow_mut() = Some(step);
        pending().await
    }

    async fn look_up(&mut self, path: &str) -> Result<Inode, OpError> {
        if self.is_simple {
            // No other process renames or removes the guarded directory or the prepared claim.
            let own = format!("/{}{}", super::PREPARED, ClaimId::of_model(self.number, 1));
            match path.strip_prefix(GUARD_NAME) {
                Some("" | "/") => return Ok(GUARD),
                Some(below) if below == own => return Ok(self.prepared),
                _ => {}
            }
        }
        match self.step(Step::LookUp(path.into())).await {
            Answer::Dir(found) => found.map_err(error),
            other => panic!("{other:?}"),
        }
    }

    async fn request(&mut self, path: &str, request: Request) -> Result<(), OpError> {
        let is_unseen = self.is_simple && path.contains(super::PREPARED);
        let step = match (is_unseen, &request) {
            (true, Request::Make(..) | Request::Remove(..)) => Step::Unseen(request),
            _ => Step::Request(request),
        };
        match self.step(step).await {
            Answer::Done(done) => done.map_err(error),
            other => panic!("{other:?}"),
        }
    }

    async fn make_at(&mut self, path: &str) -> Result<(), OpError> {
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        let dir = self.look_up(dir).await?;
        let inode = (self.number, self.at as u32);
        let request = Request::Make(dir, name.into(), inode);
        let made = self.request(path, request).await;
        if dir == GUARD && made.is_ok() {
            self.prepared = inode;
        }
        made
    }

    async fn remove_at(&mut self, path: &str) -> Result<(), OpError> {
        let path = path.trim_end_matches('/');
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        let dir = self.look_up(dir).await?;
        self.request(path, Request::Remove(dir, name.into())).await
    }
}

fn error(code: i32) -> OpError {
    OpError(Errno::from_raw_os_error(code))
}

fn below(path: &str) -> String {
    format!("{GUARD_NAME}/{path}")
}

impl ClaimDir for Replay<'_> {
    async fn list(&mut self, dir: &str) -> Result<Option<Vec<String>>, OpError> {
        let listed = match self.is_simple {
            true => self.step(Step::ListPath(below(dir))).await,
            false => match self.look_up(&below(dir)).await {
                Err(OpError(Errno::NOENT)) => return Ok(None),
                found => self.step(Step::Request(Request::List(found?))).await,
            },
        };
        match listed {
            // NOENT and STALE, the errors of a listing, mean that the directory is missing, as in `SessionDir`.
            Answer::Names(Err(_)) => Ok(None),
            Answer::Names(Ok(names)) => Ok(Some(names)),
            other => panic!("{other:?}"),
        }
    }

    async fn make(&mut self, dir: &str) -> Result<(), OpError> {
        self.make_at(&below(dir)).await
    }

    async fn rename(&mut self, from: &str, to: &str) -> Result<(), OpError> {
        let (from, to) = (below(from), below(to));
        let (old, new) = (from.rsplit_once('/').unwrap(), to.rsplit_once('/').unwrap());
        let dir = self.look_up(old.0).await?;
        let to = match old.0 == new.0 {
            true => dir,
            false => self.look_up(new.0).await?,
        };
        let request = Request::Rename(dir, old.1.into(), to, new.1.into());
        self.request(&from, request).await
    }

    async fn remove(&mut self, dir: &str) -> Result<(), OpError> {
        self.remove_at(&below(dir)).await
    }

    async fn state(&mut self, owner: &OwnerProcess) -> OwnerState {
        if owner.pid == self.number {
            return OwnerState::This;
        }
        match self.step(Step::State(owner.pid)).await {
            Answer::State(state) => state,
            other => panic!("{other:?}"),
        }
    }
}

/// Maximum number of thwarted attempts of a process to make the directory, and to remove the directory.
const MAX_ROUNDS: u32 = 3;

impl Program {
    async fn run(self, mut dir: Replay<'_>) -> End {
        let id = ClaimId::of_model(dir.number, 1);
        let ended = match self {
            Self::Use => Self::use_it(&mut dir, &id).await,
            Self::MakeAndRemove => Self::make_and_remove(&mut dir, &id).await,
        };
        ended.unwrap_or(End::Failed)
    }

    async fn use_it(dir: &mut Replay<'_>, id: &ClaimId) -> Result<End, OpError> {
        match take(dir, id, RemoteOwner::Refuse).await {
            Ok(claim) => {
                dir.step(Step::Enter).await;
                dir.step(Step::Leave).await;
                release(dir, &claim).await?;
                Ok(End::Used)
            }
            Err(NotClaimed::Held(..)) => Ok(End::Refused),
            Err(NotClaimed::Failed(e)) => Err(e),
            Err(other) => panic!("{other:?}"),
        }
    }

    /// Makes, claims, uses, releases and removes the guarded directory as `ClaimedWorkDir` does, without markers and
    /// without directories above the guarded directory.
    async fn make_and_remove(dir: &mut Replay<'_>, id: &ClaimId) -> Result<End, OpError> {
        let mut made = Levels::new();
        for _ in 0..MAX_ROUNDS {
            match dir.make_at(GUARD_NAME).await {
                Ok(()) => made.extend([0]),
                Err(OpError(Errno::EXIST)) => {}
                Err(e) => return Err(e),
            }
            let claim = match take(dir, id, RemoteOwner::Refuse).await {
                Ok(claim) => claim,
                Err(NotClaimed::Held(..)) if made.is_empty() => return Ok(End::Refused),
                Err(NotClaimed::Held(..)) => match tell(dir, id, &made).await? {
                    true => return Ok(End::Refused),
                    false => continue,
                },
                Err(NotClaimed::Vanished) => continue,
                Err(NotClaimed::Failed(e)) => return Err(e),
                Err(other) => panic!("{other:?}"),
            };
            dir.step(Step::Enter).await;
            dir.step(Step::Leave).await;
            release(dir, &claim).await?;
            for _ in 0..MAX_ROUNDS {
                match depart(dir, id, &mut made, RemoteOwner::Refuse, |_| false).await {
                    Ok(Departure::Done) => return Ok(End::Used),
                    Err(OpError(Errno::NOTEMPTY)) => {}
                    other => panic!("{other:?}"),
                }
            }
            break;
        }
        Ok(End::Tired)
    }

    /// The end of the program after `answers`, or the next step of the program.
    fn next(self, number: u32, is_simple: bool, answers: &[Answer]) -> Result<End, Step> {
        let next = RefCell::new(None);
        let replay = Replay {
            number,
            is_simple,
            prepared: GUARD,
            answers,
            at: 0,
            next: &next,
        };
        let poll = pin!(self.run(replay)).poll(&mut Context::from_waker(Waker::noop()));
        match poll {
            Poll::Ready(end) => Ok(end),
            Poll::Pending => Err(next.take().expect("a process waits for a step only")),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Process {
    number: u32,
    program: Program,
    is_simple: bool,
    answers: Vec<Answer>,
    /// End or next step that follows from the answers.
    next: Result<End, Step>,
    is_inside: bool,
    is_running: bool,
    end: Option<End>,
}

impl Process {
    fn new(number: usize, program: Program, is_simple: bool) -> Self {
        let number = number as u32;
        Self {
            number,
            program,
            is_simple,
            answers: vec![],
            next: program.next(number, is_simple, &[]),
            is_inside: false,
            is_running: true,
            end: None,
        }
    }

    fn answer(&mut self, answer: Answer) {
        self.answers.push(answer);
        self.next = self
            .program
            .next(self.number, self.is_simple, &self.answers);
    }
}

/// State of all directories and processes between two steps.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    dirs: Dirs,
    processes: Vec<Process>,
    /// Number of processes that may still be killed.
    kills: u32,
    /// Number of requests that may still be repeated.
    repetitions: u32,
    /// An executed request that the server may execute again.
    late: Option<Request>,
    /// Number of preemptions that are still allowed, and the process of the latest step; `None` without a limit. A
    /// preemption is a step of another process while the process of the latest step is running.
    preemptions: Option<(u32, Option<usize>)>,
}

impl State {
    /// This state before a step of a process; `None` if the step would be one preemption too many.
    fn turn_of(&self, number: usize) -> Option<Self> {
        let mut next = self.clone();
        if let Some((left, last)) = &mut next.preemptions {
            if last.is_some_and(|last| last != number && self.processes[last].is_running) {
                *left = left.checked_sub(1)?;
            }
            *last = Some(number);
        }
        Some(next)
    }
}

/// The events that may happen in a model.
#[derive(Clone)]
struct Model {
    programs: Vec<Program>,
    dirs: Dirs,
    kills: u32,
    repetitions: u32,
    /// Whether a rename onto a directory with entries joins the two directories.
    joins: bool,
    /// Whether every process runs on a machine of its own.
    is_far: bool,
    /// Maximum number of preemptions, as in [`State::preemptions`].
    preemptions: Option<u32>,
}

/// The distinct combinations of the processes' ends over all executions.
type Ends = HashSet<Vec<Option<End>>>;

impl Model {
    fn new(programs: &[Program]) -> Self {
        let dirs = Dirs(BTreeMap::from([
            (TOP, BTreeMap::from([(GUARD_NAME.into(), GUARD)])),
            (GUARD, BTreeMap::new()),
        ]));
        Self {
            programs: programs.into(),
            dirs,
            kills: 0,
            repetitions: 0,
            joins: false,
            is_far: false,
            preemptions: None,
        }
    }

    fn is_simple(&self) -> bool {
        self.repetitions == 0 && !self.programs.contains(&Program::MakeAndRemove)
    }

    /// Adds the claim of a process that has ended.
    fn with_ended_holder(mut self) -> Self {
        let claim = (u32::MAX, 2);
        let holder = (u32::MAX, 3);
        let id = ClaimId::of_model(99, 1).to_string();
        self.dirs.0.insert(holder, BTreeMap::new());
        self.dirs.0.insert(claim, BTreeMap::from([(id, holder)]));
        let guard = self
            .dirs
            .0
            .get_mut(&GUARD)
            .expect("the model has a guarded directory");
        guard.insert(super::CLAIM.into(), claim);
        self
    }

    fn without_guard(mut self) -> Self {
        self.dirs = Dirs(BTreeMap::from([(TOP, BTreeMap::new())]));
        self
    }

    /// Explores all executions. Checks that at most one process has the directory in each state, and calls `check_end`
    /// on each final state. Returns how the processes ended in the executions.
    fn explore(&self, check_end: impl Fn(&State)) -> Ends {
        let programs = self.programs.iter().enumerate();
        let new =
            |(number, program): (usize, &Program)| Process::new(number, *program, self.is_simple());
        let first = State {
            dirs: self.dirs.clone(),
            processes: programs.map(new).collect(),
            kills: self.kills,
            repetitions: self.repetitions,
            late: None,
            preemptions: self.preemptions.map(|left| (left, None)),
        };
        let mut known = HashSet::from([digest(&first)]);
        let mut open = vec![first];
        let mut seen = Ends::new();
        let mut left_behind = HashSet::new();
        while let Some(state) = open.pop() {
            let inside = state
                .processes
                .iter()
                .filter(|p| p.is_inside && p.is_running);
            assert!(
                inside.count() <= 1,
                "two have the directory: {}",
                shown(&state)
            );
            if state.processes.iter().all(|p| !p.is_running) {
                seen.insert(ends(&state));
                check_end(&state);
                if left_behind.insert(state.dirs.clone()) {
                    self.check_that_it_can_be_claimed(&state);
                }
            }
            for next in self.after(&state) {
                if known.insert(digest(&next)) {
                    open.push(next);
                }
            }
        }
        seen
    }

    /// Checks that a further run gets the directory after a final state.
    fn check_that_it_can_be_claimed(&self, state: &State) {
        if self.is_far {
            return;
        }
        let mut state = state.clone();
        (state.kills, state.repetitions, state.late) = (0, 0, None);
        state.preemptions = None;
        let number = state.processes.len();
        let next = Process::new(number, Program::MakeAndRemove, self.is_simple());
        state.processes.push(next);
        while state
            .processes
            .last()
            .expect("a process was added")
            .is_running
        {
            state = self
                .after(&state)
                .pop()
                .expect("a running process has a next step");
        }
        let end = state.processes.last().expect("a process was added").end;
        assert_eq!(end, Some(End::Used), "{}", shown(&state));
    }

    /// All states that may follow a state.
    fn after(&self, state: &State) -> Vec<State> {
        for (number, process) in state.processes.iter().enumerate() {
            if process.is_running
                && let Err(Step::Unseen(request)) = &process.next
            {
                let mut next = state.clone();
                let answer = next.dirs.execute(request, self.joins);
                next.processes[number].answer(answer);
                return vec![next];
            }
        }
        let mut all = Vec::new();
        if let Some(request) = &state.late {
            let mut next = state.clone();
            next.dirs.execute(request, self.joins);
            next.late = None;
            all.push(next);
        }
        for (number, process) in state.processes.iter().enumerate() {
            if !process.is_running {
                continue;
            }
            let Some(state) = &state.turn_of(number) else {
                continue;
            };
            if state.kills > 0 {
                let mut next = state.clone();
                next.kills -= 1;
                next.processes[number].is_running = false;
                all.push(next);
            }
            match &process.next {
                Ok(end) => {
                    let mut next = state.clone();
                    next.processes[number].is_running = false;
                    next.processes[number].end = Some(*end);
                    all.push(next);
                }
                Err(step) => self.answer(state, number, step, &mut all),
            }
        }
        all
    }

    fn answer(&self, state: &State, number: usize, step: &Step, all: &mut Vec<State>) {
        let mut next = state.clone();
        let answer = match step {
            Step::LookUp(path) => {
                let found = next.dirs.look_up(path);
                Answer::Dir(found.map_err(|e| e.raw_os_error()))
            }
            Step::ListPath(path) => match next.dirs.look_up(path) {
                Err(e) => Answer::Names(Err(e.raw_os_error())),
                Ok(dir) => next.dirs.execute(&Request::List(dir), self.joins),
            },
            Step::State(other) => Answer::State(self.state_of(state, *other)),
            Step::Unseen(_) => unreachable!("an unseen request is executed first"),
            Step::Enter | Step::Leave => {
                next.processes[number].is_inside = *step == Step::Enter;
                Answer::Done(Ok(()))
            }
            Step::Request(request) => {
                let answer = next.dirs.execute(request, self.joins);
                if next.repetitions > 0 && !matches!(request, Request::List(_)) {
                    next.repetitions -= 1;
                    // The server executes the request again at any time.
                    let mut late = next.clone();
                    late.late = Some(request.clone());
                    late.processes[number].answer(answer.clone());
                    all.push(late);
                    // The first reply is lost, and the process sees the reply to the repetition.
                    let mut lost = next.clone();
                    let second = lost.dirs.execute(request, self.joins);
                    lost.processes[number].answer(second);
                    all.push(lost);
                    next.repetitions += 1;
                }
                answer
            }
        };
        next.processes[number].answer(answer);
        all.push(next);
    }

    fn state_of(&self, state: &State, number: u32) -> OwnerState {
        match state.processes.get(number as usize) {
            None => OwnerState::Ended,
            Some(_) if self.is_far => OwnerState::Elsewhere,
            Some(process) if process.is_running => OwnerState::Running,
            Some(_) => OwnerState::Ended,
        }
    }
}

/// A 64-bit hash, by which millions of states are almost certainly distinct.
fn digest(state: &State) -> u64 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}

/// Steps and answers of each process, as text.
fn shown(state: &State) -> String {
    let mut text = format!("left: {:?}\n", left(state));
    for (number, process) in state.processes.iter().enumerate() {
        text += &format!(
            "process {number}: {:?}, {:?}\n",
            process.program, process.end
        );
        for at in 0..=process.answers.len() {
            let step =
                process
                    .program
                    .next(number as u32, process.is_simple, &process.answers[..at]);
            text += &format!("  {step:?} -> {:?}\n", process.answers.get(at));
        }
    }
    text
}

/// Paths of all directories below the top.
fn left(state: &State) -> Vec<String> {
    let mut all = Vec::new();
    let mut open = vec![(String::new(), TOP)];
    while let Some((path, dir)) = open.pop() {
        for (name, inode) in &state.dirs.0[&dir] {
            all.push(format!("{path}{name}"));
            open.push((format!("{path}{name}/"), *inode));
        }
    }
    all
}

fn ends(state: &State) -> Vec<Option<End>> {
    state.processes.iter().map(|p| p.end).collect()
}

/// Checks that at least one process had the directory, that no process failed, and that nothing of a claim is left.
fn one_has_it(state: &State) {
    let ends = ends(state);
    assert!(ends.contains(&Some(End::Used)), "{}", shown(state));
    assert!(!ends.contains(&Some(End::Failed)), "{}", shown(state));
    assert_eq!(left(state), [GUARD_NAME], "{}", shown(state));
}

const USED: Option<End> = Some(End::Used);
const REFUSED: Option<End> = Some(End::Refused);

/// The model with at most three preemptions.
fn bounded(model: Model) -> Model {
    Model {
        preemptions: Some(3),
        ..model
    }
}

#[test]
fn of_two_one_gets_a_free_directory() {
    let seen = Model::new(&[Program::Use; 2]).explore(one_has_it);
    for ends in [[USED, USED], [USED, REFUSED], [REFUSED, USED]] {
        assert!(seen.contains(&ends[..]), "{ends:?}");
    }
}

#[test]
fn of_three_one_gets_a_free_directory() {
    let seen = bounded(Model::new(&[Program::Use; 3])).explore(one_has_it);
    assert!(seen.contains(&[USED, REFUSED, REFUSED][..]));
}

#[test]
fn of_two_one_takes_over_what_an_ended_process_left() {
    let model = Model::new(&[Program::Use; 2]).with_ended_holder();
    let seen = model.explore(one_has_it);
    assert!(seen.contains(&[USED, REFUSED][..]));
}

#[test]
fn of_three_one_takes_over_what_an_ended_process_left() {
    let model = Model::new(&[Program::Use; 3]).with_ended_holder();
    let seen = bounded(model).explore(one_has_it);
    assert!(seen.contains(&[REFUSED, USED, REFUSED][..]));
}

#[test]
fn processes_that_are_killed_block_nobody() {
    for model in [
        Model::new(&[Program::Use; 2]),
        Model::new(&[Program::Use; 2]).with_ended_holder(),
    ] {
        let model = Model { kills: 2, ..model };
        let seen = model.explore(|_| ());
        assert!(seen.contains(&[None, USED][..]));
    }
    let three = Model::new(&[Program::Use; 3]).with_ended_holder();
    let three = Model {
        kills: 1,
        preemptions: Some(2),
        ..three
    };
    let seen = three.explore(|_| ());
    assert!(seen.contains(&[None, USED, REFUSED][..]));
}

#[test]
fn a_lost_reply_or_a_late_repetition_gives_nobody_a_directory_that_another_has() {
    for model in [
        Model::new(&[Program::Use; 2]),
        Model::new(&[Program::Use; 2]).with_ended_holder(),
    ] {
        let model = Model {
            repetitions: 1,
            kills: 1,
            ..model
        };
        let seen = model.explore(|state| {
            let ends = ends(state);
            let is_undisturbed = state.kills == 1;
            // A late repetition can make the claim of a running process again.
            let no_repetition_is_late = state.late.is_none();
            if is_undisturbed && no_repetition_is_late {
                assert!(ends.contains(&USED), "{}", shown(state));
            }
        });
        assert!(seen.contains(&[USED, REFUSED][..]));
    }
}

#[test]
fn processes_of_other_machines_are_left_alone() {
    let model = Model {
        is_far: true,
        kills: 1,
        repetitions: 1,
        ..Model::new(&[Program::Use; 2])
    };
    let seen = model.explore(|_| ());
    assert!(seen.contains(&[None, REFUSED][..]));
}

/// A server whose rename joins directories gives no process a directory that another process has.
#[test]
fn renames_that_join_directories_are_noticed() {
    for programs in [&[Program::Use; 2][..], &[Program::Use; 3]] {
        let model = Model {
            joins: true,
            ..bounded(Model::new(programs))
        };
        let seen = model.explore(|_| ());
        let both = vec![REFUSED; programs.len()];
        assert!(seen.contains(&both), "the rename is not exclusive");
    }
}

/// The last process that has the directory removes the directory, whichever process made it.
#[test]
fn a_directory_that_was_made_is_removed() {
    let check = |state: &State| {
        let ends = ends(state);
        assert!(!ends.contains(&Some(End::Failed)), "{}", shown(state));
        if !ends.contains(&Some(End::Tired)) {
            assert!(ends.contains(&USED), "{}", shown(state));
            assert_eq!(left(state), [""; 0], "{}", shown(state));
        }
    };
    let seen = Model::new(&[Program::MakeAndRemove; 2])
        .without_guard()
        .explore(check);
    assert!(seen.contains(&[USED, REFUSED][..]));
}

/// With killed processes and repeated requests, at most one process has the directory at a time, and the next run gets
/// the directory.
#[test]
fn a_directory_that_was_made_is_claimed_after_kills() {
    let model = Model::new(&[Program::MakeAndRemove; 2]).without_guard();
    let model = Model {
        kills: 1,
        repetitions: 1,
        preemptions: Some(2),
        ..model
    };
    let seen = model.explore(|_| ());
    assert!(seen.contains(&[None, USED][..]));
}
