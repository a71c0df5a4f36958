//! Runs scenarios of many seeds, and shows the first failing seed with the smallest scenario that still fails.

use clap::Parser;
use plimsoll_vopr::Case;
use std::collections::BTreeMap;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Deterministic simulation testing of Plimsoll.
#[derive(Parser)]
struct Arguments {
    /// First seed; each further seed is one more
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of seeds; by default as many as fit into --seconds
    #[arg(long)]
    count: Option<u64>,
    /// Time in seconds after which no further 200 seeds are begun, without --count
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Goes on after a seed that breaks a rule; counts the broken rules in the end, without shrinking
    #[arg(long)]
    keep_going: bool,
    /// Simulates only short runs that compete for one work directory
    #[arg(long)]
    claims: bool,
    /// Prints the scenario of each seed
    #[arg(long)]
    verbose: bool,
}

/// Maximum number of seeds per process of the system. Threads of killed simulated processes never end, so the memory of
/// the threads is freed only when the process of the system ends.
const SEEDS_PER_PROCESS: u64 = 200;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.count {
        Some(count) if count <= SEEDS_PER_PROCESS => execute(&arguments),
        _ => execute_in_processes(&arguments),
    }
}

/// Executes the seeds in child processes of at most [`SEEDS_PER_PROCESS`] seeds each. A child's failure ends the
/// execution, unless the child found a broken rule and `--keep-going` is set.
fn execute_in_processes(arguments: &Arguments) -> ExitCode {
    let begun = Instant::now();
    let end = Duration::from_secs(arguments.seconds);
    let (mut seed, mut code) = (arguments.seed, ExitCode::SUCCESS);
    loop {
        let left = match arguments.count {
            Some(count) => count - (seed - arguments.seed),
            None if begun.elapsed() < end => SEEDS_PER_PROCESS,
            None => 0,
        };
        if left == 0 {
            break;
        }
        let count = left.min(SEEDS_PER_PROCESS);
        // `/proc/self/exe` is the running program even if a build has replaced the file meanwhile.
        let mut process = Command::new("/proc/self/exe");
        process.args(["--seed", &seed.to_string(), "--count", &count.to_string()]);
        process.args(arguments.keep_going.then_some("--keep-going"));
        process.args(arguments.claims.then_some("--claims"));
        process.args(arguments.verbose.then_some("--verbose"));
        let ended = process.status().expect("the program starts again");
        seed += count;
        if !ended.success() {
            code = ExitCode::FAILURE;
            let is_crash = ended.code() != Some(1);
            if is_crash {
                println!("the process of the {count} seeds before {seed} crashed: {ended}");
            }
            if is_crash || !arguments.keep_going {
                return code;
            }
        }
    }
    println!(
        "{} seeds from {} in {:.0} s in all",
        seed - arguments.seed,
        arguments.seed,
        begun.elapsed().as_secs_f64()
    );
    code
}

/// Executes all seeds of the command line without child processes.
fn execute(arguments: &Arguments) -> ExitCode {
    let begun = Instant::now();
    let mut done = 0;
    let mut broken = BTreeMap::<&str, u64>::new();
    let count = arguments.count.expect("a process has a number of seeds");
    for seed in arguments.seed..arguments.seed + count {
        let case = match arguments.claims {
            true => Case::draw_claims(seed),
            false => Case::draw(seed),
        };
        if arguments.verbose {
            println!("{case:#?}");
        }
        if let Err(violation) = case.check() {
            println!("seed {seed}: {violation}");
            if arguments.keep_going {
                *broken.entry(violation.rule).or_default() += 1;
                done += 1;
                continue;
            }
            let smallest = case.shrink(violation.rule);
            println!("the smallest scenario that breaks the same rule:\n{smallest:#?}");
            let claims = if arguments.claims { " --claims" } else { "" };
            println!("again: plimsoll-vopr{claims} --seed {seed} --count 1");
            return ExitCode::FAILURE;
        }
        done += 1;
    }
    if arguments.keep_going {
        println!(
            "{} of {done} seeds break a rule",
            broken.values().sum::<u64>()
        );
        for (rule, seeds) in &broken {
            println!("  {seeds} {rule}");
        }
        return ExitCode::from(u8::from(!broken.is_empty()));
    }
    println!(
        "{done} seeds from {} in {:.0} s, no rule broken",
        arguments.seed,
        begun.elapsed().as_secs_f64()
    );
    ExitCode::SUCCESS
}
