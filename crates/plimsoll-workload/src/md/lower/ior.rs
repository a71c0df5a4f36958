//! IOR's patterns as IO500 runs them.

use super::{
    LoweredPattern, RowTable, by, countable, parameter, pattern, row, squeeze, stage,
    stonewall_parameter, template, worn_out,
};
use crate::md::options::{Ior, Options};
use plimsoll_plan::{
    OnError, OpKind, Parameter, Pattern, Rounds, Stage, StageWork, TransferLoop, pattern_names,
};

pub(super) fn lower(
    options: &Options,
    i: &Ior,
    ranks: u32,
    rows: &mut RowTable,
) -> Result<LoweredPattern, String> {
    let bytes = u128::from(i.transfers) * u128::from(i.size) * u128::from(ranks);
    countable("the bytes of all transfers", bytes)?;
    let name = options.name().as_str();
    let mut stages = vec![
        Stage {
            stonewall: worn_out(i.stonewall),
            ..transfers(&format!("{name}-write"), i, None, rows)
        },
        transfers(&format!("{name}-read"), i, Some(options.offset), rows),
    ];
    squeeze(&mut stages, options, false);
    let object_name = match i.hard {
        true => template(pattern_names::IOR_HARD_OBJECT),
        false => template(pattern_names::IOR_EASY_OBJECT),
    };
    Ok(LoweredPattern {
        title: match i.hard {
            true => "transfers of an odd size, strided over one file that all ranks share",
            false => "large sequential transfers, a file for each rank",
        },
        notes: match i.transfers {
            0 => vec!["nothing is written or read (--transfers 0)"],
            _ => vec![],
        },
        pattern: Pattern {
            object_name,
            ..pattern(options, ranks, stages)
        },
        parameters: parameters(options, i),
    })
}

/// The rank writes its own part, or reads the part of the rank at distance `read_ahead`.
///
/// The files are removed with the root, not by a stage: another rank may still read them, and IOR does not measure the
/// removal.
fn transfers(name: &str, i: &Ior, read_ahead: Option<i64>, rows: &mut RowTable) -> Stage {
    let write = read_ahead.is_none();
    let (transfer, kind, rounds) = match write {
        true => (row::WRITE, OpKind::Write, Rounds::Count(i.transfers)),
        false => (row::READ, OpKind::Read, Rounds::Made),
    };
    let work = TransferLoop {
        owner: by(read_ahead.unwrap_or(0)),
        write,
        size: i.size,
        rounds,
        strided: i.hard,
        open: rows.id(row::OPEN, OpKind::Open),
        transfer: rows.id(transfer, kind),
        sync: write.then(|| rows.id(row::SYNC, OpKind::Fsync)),
        close: rows.id(row::CLOSE, OpKind::Close),
    };
    stage(name, StageWork::Transfers(work), OnError::Stop)
}

fn parameters(options: &Options, i: &Ior) -> Vec<Parameter> {
    let default: u64 = if i.hard { 10_000_000 } else { 4_960_000 };
    let meaning = "transfers of a rank, at most";
    let mut all = vec![parameter("transfers", i.transfers, default, meaning)];
    if !i.hard {
        let default: u64 = 2 << 20;
        all.push(parameter(
            "transfer-size",
            i.size,
            default,
            "bytes of a transfer",
        ));
    }
    all.push(stonewall_parameter(i.stonewall));
    all.push(parameter(
        "offset",
        options.offset,
        1,
        "ranks from writer to reader",
    ));
    all
}
