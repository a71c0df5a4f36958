//! IOR's patterns as IO500 runs them.

use super::{
    RowTable, by, countable, memory, parameter, row, samples, squeeze, stage, template, text,
};
use crate::options::{Ior, Options};
use plimsoll_plan::{
    NamePiece, OnError, OpKind, Parameter, Pattern, RootHandling, Rounds, Stage, StageWork,
    Stonewall, TransferLoop,
};

pub(super) fn pattern(
    options: &Options,
    i: &Ior,
    ranks: u32,
    rows: &mut RowTable,
) -> Result<Pattern, String> {
    let bytes = u128::from(i.transfers) * u128::from(i.size) * u128::from(ranks);
    countable("the bytes of all transfers", bytes)?;
    let name = options.name().as_str();
    let mut stages = vec![
        Stage {
            stonewall: i.stonewall.map(|after| Stonewall {
                after,
                wear_out: true,
            }),
            ..transfers(&format!("{name}-write"), i, None, rows)
        },
        transfers(&format!("{name}-read"), i, Some(options.offset), rows),
    ];
    squeeze(&mut stages, options, false);
    let object_name = if i.hard {
        template([text("file")])
    } else {
        template([text("ior_file_easy."), NamePiece::Rank(8)])
    };
    Ok(Pattern {
        root: options.place.root.clone(),
        root_is: RootHandling::New,
        leaves_objects: false,
        set_name: template([]),
        object_name,
        ranks,
        sets: 1,
        // How large a file becomes is for the transfers to say.
        objects: 0,
        object_size: 0,
        position: 0,
        positions: vec![],
        verify: false,
        content: options.content,
        direct: options.direct,
        samples: samples(options),
        hold_memory: memory(options.hold_memory_mib),
        stages,
    })
}

/// Writing the rank's own part, or reading that of the rank that lies so far ahead.
///
/// No stage removes the files: a rank that is still reading one belonging to another would find
/// it gone, and IOR does not measure it either. They go with the root.
fn transfers(name: &str, i: &Ior, read_ahead: Option<i64>, rows: &mut RowTable) -> Stage {
    let write = read_ahead.is_none();
    let (transfer, kind) = if write {
        (row::WRITE, OpKind::Write)
    } else {
        (row::READ, OpKind::Read)
    };
    let work = TransferLoop {
        owner: by(read_ahead.unwrap_or(0)),
        write,
        size: i.size,
        rounds: if write {
            Rounds::Count(i.transfers)
        } else {
            Rounds::Made
        },
        strided: i.hard,
        open: rows.id(row::OPEN, OpKind::Open),
        transfer: rows.id(transfer, kind),
        sync: write.then(|| rows.id(row::SYNC, OpKind::Fsync)),
        close: rows.id(row::CLOSE, OpKind::Close),
    };
    stage(name, StageWork::Transfers(work), OnError::Stop)
}

pub(super) fn parameters(options: &Options, i: &Ior) -> Vec<Parameter> {
    let default: u64 = if i.hard { 10_000_000 } else { 4_960_000 };
    let mut all = vec![parameter(
        "transfers",
        i.transfers,
        default,
        "transfers of a rank, at most",
    )];
    if !i.hard {
        let default: u64 = 2 << 20;
        all.push(parameter(
            "transfer-size",
            i.size,
            default,
            "bytes of a transfer",
        ));
    }
    all.push(super::stonewall_parameter(i.stonewall));
    let meaning = "ranks from writer to reader";
    all.push(parameter("offset", options.offset, 1, meaning));
    all
}
