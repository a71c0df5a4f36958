//! Runs scenarios of many seeds, and shows the first failing seed with the smallest scenario that still fails.

use clap::Parser;
use plimsoll_vopr::Case;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Deterministic simulation testing of Plimsoll.
#[derive(Parser)]
struct Arguments {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of seeds; without it, as many as fit the time.
    #[arg(long)]
    count: Option<u64>,
    /// Seconds after which no further seed is begun.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Goes on after a seed that breaks a rule, and counts them in the end, without shrinking.
    #[arg(long)]
    keep_going: bool,
    /// Only short runs that compete for a directory.
    #[arg(long)]
    claims: bool,
    /// Prints the scenario of each seed.
    #[arg(long)]
    verbose: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let begun = Instant::now();
    let last = Duration::from_secs(arguments.seconds);
    let mut done = 0;
    let mut broken = BTreeMap::<&str, u64>::new();
    for seed in arguments.seed.. {
        let is_enough = match arguments.count {
            Some(count) => done >= count,
            None => begun.elapsed() >= last,
        };
        if is_enough {
            break;
        }
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
