//! Front end of netmist's custom workload files.

use super::{FrontEnd, diagnosed};
use plimsoll_workload::mix::netmist;

/// Parses netmist's custom workload files, recognised by their first lines, as operation mixes.
pub(super) const FRONT_END: FrontEnd = FrontEnd {
    claims: |found| netmist::is_custom_workload(&found.text),
    read: |found| {
        let workload = netmist::parse(&found.text, &found.name).map_err(diagnosed)?;
        Ok(Box::new(workload))
    },
    builtins: Vec::new,
};
