//! Detects from the environment whether an MPI launcher started this process.

/// What a launcher states about this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchInfo {
    /// The launcher's name in messages.
    pub name: &'static str,
    /// Number of processes started, if the launcher states it.
    pub size: Option<u32>,
    /// Rank of this process, if the launcher states it.
    pub rank: Option<u32>,
    /// Whether MPI can connect the processes.
    pub mpi: bool,
}

/// Launchers in order of precedence: name, environment variables of group size and rank, and whether MPI can connect
/// the processes. The first launcher with a set variable applies, because a launcher that is built on another launcher
/// sets the variables of both.
const KINDS: [(&str, &str, &str, bool); 5] = [
    (
        "mpiexec of Open MPI",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_RANK",
        true,
    ),
    (
        "mpiexec of MVAPICH",
        "MV2_COMM_WORLD_SIZE",
        "MV2_COMM_WORLD_RANK",
        true,
    ),
    ("an MPI launcher (PMI)", "PMI_SIZE", "PMI_RANK", true),
    // PMIx provides the size only through its server; below srun, the environment has the size, too.
    (PMIX, "SLURM_STEP_NUM_TASKS", "PMIX_RANK", true),
    // A batch script has no step, so the variables are set only below srun.
    (SRUN, "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", false),
];

const PMIX: &str = "an MPI launcher (PMIx)";
const SRUN: &str = "srun";

/// The launcher, such as `mpiexec`, that started this process, by its environment variables; `None` for a process
/// without launcher.
pub fn found() -> Option<LaunchInfo> {
    find(|name| std::env::var(name).ok())
}

/// Finds the launcher; `variable` reads the environment.
fn find(variable: impl Fn(&str) -> Option<String>) -> Option<LaunchInfo> {
    let number = |name: &str| variable(name)?.trim().parse::<u32>().ok();
    KINDS.into_iter().find_map(|(name, size, rank, mpi)| {
        let (size, rank) = (number(size), number(rank));
        let is_found = match name {
            // Slurm sets the step size with and without PMIx.
            PMIX => rank.is_some(),
            SRUN => size.is_some(),
            _ => size.is_some() || rank.is_some(),
        };
        is_found.then_some(LaunchInfo {
            name,
            size,
            rank,
            mpi,
        })
    })
}

/// Whether a launcher forwards the output of this process; `variable` returns the value of an environment variable.
///
/// Open MPI's launcher gives processes a terminal that belongs to the launcher, even when the output goes to a file.
/// Below `srun --pty` the terminal is the user's, unless another launcher runs below srun: Open MPI and MVAPICH set
/// variables of their own, and launchers that only set `PMI_RANK` use pipes.
pub fn forwards_output(variable: impl Fn(&str) -> Option<String>) -> bool {
    let own_variables = |launch: &LaunchInfo| launch.name.starts_with("mpiexec of ");
    find(&variable)
        .is_some_and(|launch| own_variables(&launch) || variable("SLURM_PTY_PORT").is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_in(environment: &[(&str, &str)]) -> Option<(&'static str, Option<u32>, Option<u32>)> {
        let launch = find(|name| {
            let found = environment.iter().find(|(n, _)| *n == name);
            found.map(|(_, value)| value.to_string())
        })?;
        Some((launch.name, launch.size, launch.rank))
    }

    #[test]
    fn launchers_are_known_by_their_variables() {
        assert_eq!(find_in(&[]), None);
        assert_eq!(
            find_in(&[
                ("PMIX_RANK", "1"),
                ("OMPI_COMM_WORLD_SIZE", "4"),
                ("OMPI_COMM_WORLD_RANK", "1")
            ]),
            Some(("mpiexec of Open MPI", Some(4), Some(1)))
        );
        assert_eq!(
            find_in(&[("PMI_RANK", "0"), ("PMI_SIZE", "2"), ("PMI_FD", "8")]),
            Some(("an MPI launcher (PMI)", Some(2), Some(0)))
        );
        assert_eq!(
            find_in(&[("PMIX_RANK", "3")]),
            Some(("an MPI launcher (PMIx)", None, Some(3)))
        );
    }

    #[test]
    fn numbers_of_launchers_are_decimal() {
        let mvapich = [
            ("MV2_COMM_WORLD_SIZE", " 4\n"),
            ("MV2_COMM_WORLD_RANK", "three"),
        ];
        assert_eq!(
            find_in(&mvapich),
            Some(("mpiexec of MVAPICH", Some(4), None))
        );
        assert_eq!(find_in(&[("PMI_RANK", "x"), ("PMIX_RANK", "-1")]), None);
        assert_eq!(
            find_in(&[("OMPI_COMM_WORLD_RANK", "2")]),
            Some(("mpiexec of Open MPI", None, Some(2)))
        );
    }

    #[test]
    fn processes_of_srun_alone_cannot_reach_each_other() {
        let mpi = |name: &str| find(|n| (n == name).then(|| "2".into())).map(|launch| launch.mpi);
        assert_eq!(mpi("SLURM_STEP_NUM_TASKS"), Some(false));
        for name in [
            "OMPI_COMM_WORLD_SIZE",
            "MV2_COMM_WORLD_RANK",
            "PMI_SIZE",
            "PMIX_RANK",
        ] {
            assert_eq!(mpi(name), Some(true), "{name}");
        }
    }

    #[test]
    fn output_is_forwarded_but_below_srun_with_a_terminal() {
        let forwards = |environment: &[(&str, &str)]| {
            forwards_output(|name| {
                let found = environment.iter().find(|(n, _)| *n == name);
                found.map(|(_, value)| value.to_string())
            })
        };
        let (step, pmix) = (("SLURM_STEP_NUM_TASKS", "1"), ("PMIX_RANK", "0"));
        let (pty, open_mpi) = (("SLURM_PTY_PORT", "40001"), ("OMPI_COMM_WORLD_RANK", "0"));
        assert!(!forwards(&[]));
        assert!(forwards(&[open_mpi]));
        assert!(forwards(&[("PMI_RANK", "0")]));
        assert!(forwards(&[step, pmix]));
        assert!(forwards(&[step]));
        assert!(!forwards(&[step, pty]));
        assert!(!forwards(&[step, pmix, pty]));
        assert!(forwards(&[step, pmix, pty, open_mpi]));
    }

    #[test]
    fn srun_is_distinguished_from_a_batch_script() {
        let batch = [("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0")];
        assert_eq!(find_in(&batch), None);
        let step = [("SLURM_STEP_NUM_TASKS", "8"), ("SLURM_PROCID", "5")];
        assert_eq!(find_in(&step), Some(("srun", Some(8), Some(5))));
        let pmix = [
            ("SLURM_STEP_NUM_TASKS", "8"),
            ("SLURM_PROCID", "5"),
            ("PMIX_RANK", "5"),
        ];
        assert_eq!(
            find_in(&pmix),
            Some(("an MPI launcher (PMIx)", Some(8), Some(5)))
        );
    }
}
