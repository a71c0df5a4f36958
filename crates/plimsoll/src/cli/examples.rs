//! Examples in the help of commands.

pub(super) const RUN_EXAMPLES: &str = "\
Examples:
  plimsoll run fileserver --time 10s
      in a fresh directory below the system's temporary directory
  plimsoll run webserver --dir /mnt/test --warmup 5s --time 60s
  plimsoll run my.f --set nthreads=16 --set filesize=1m
  plimsoll run varmail --ops 100000 --quit alldone
  plimsoll run randomread --drop-caches --cpus 0-3 --format json > run.json
  plimsoll run my.f --target 'null:?latency=10ms&clock=virtual'
      no real target: a fixed 10 ms latency, in virtual time
  mpiexec -n 8 plimsoll run fileserver --dir /shared/test
      the workers spread over eight ranks, on as many machines as mpiexec uses

Without --dir, a workload file's own paths are used unchanged, and a built-in workload \
gets a fresh directory below the system's temporary directory.
Exit codes: 0 valid, 1 failed, 2 bad usage or input, 3 invalid, 130 interrupted by a signal.";

pub(super) const CURVE_EXAMPLES: &str = "\
Examples:
  plimsoll curve vda --load 10,20,30 --dir /mnt/test
      10 minutes per load: 5 of warm-up and 5 measured, plus the time to create the files
  plimsoll curve swbuild --load 5..50/5 --dir /mnt/test --latency-limit 20ms
  plimsoll curve vda --load 10..100/10 --scale 0.001 --time 10s --warmup 2s
      a thousandth of the data and the rates; the result is marked as not comparable
  plimsoll curve vda --load 1..8 --target 'null:?latency=2ms&clock=virtual' --jobs 4
      no real target, in virtual time; four points at a time, with the results of one at a time
  plimsoll curve varmail --vary nthreads=1,2,4,8,16,32 --dir /mnt/test --time 20s
  plimsoll curve fileserver --vary iosize=4k..1m/x2 --vary nthreads=1..64/x4 --dir /mnt/test --time 20s
      a matrix: a run for each combination of the values
  plimsoll curve randomread --vary lanes=1,2,4 --target 'posix:?io=uring' --dir /mnt/test

A point that fails a criterion is invalid; it is kept and shown with its reasons.
Exit codes: 0 at least one point is valid, 1 failed, 2 bad usage or input, 3 no point is valid, 130 \
interrupted by a signal.";

pub(super) const FIND_EXAMPLES: &str = "\
Examples:
  plimsoll find vda --max-load 200 --dir /mnt/test
      loads from 25 streams up, 10 minutes each: 5 of warm-up and 5 measured, plus the time to create the files
  plimsoll find swbuild --max-load 40 --start-load 4 --resolution 1 --latency-limit 20ms --dir /mnt/test
  plimsoll find vda --max-load 100 --scale 0.001 --time 10s --warmup 2s
      a thousandth of the data and the rates; the result is marked as not comparable
  plimsoll find vda --max-load 16 --target 'null:?latency=10ms&servers=1&clock=virtual'
  plimsoll find randomread --vary nthreads --until 'p99 > 5ms' --dir /mnt/test --time 20s
      the highest number of threads whose 99th percentile is at most 5 ms
  plimsoll find app.toml --vary rate --until 'write_file:p99.9 > 20ms' --dir /mnt/test

Loads are doubled until one is not sustained; then the interval is bisected. A load with a narrow \
margin is repeated, and both ends of the interval are confirmed. A search over a parameter also ends where \
throughput stops growing.
A condition of --until is [OPERATION:]FIGURE, then <, <=, > or >=, and a limit: ops/s, MiB/s, errors (a number, or in \
percent), mean, p99 and other percentiles, service mean, service p99, cpu, queue growth (times), stalled, client (in \
percent).
Exit codes: 0 a load is sustained, 1 failed, 2 bad usage or input, 3 no load is sustained, 130 \
interrupted by a signal.";

pub(super) const FIT_EXAMPLES: &str = "\
Examples:
  plimsoll systems fit mine.toml --to plimsoll-results/vda-curve-20260101-120000 --output fitted.toml
  plimsoll systems fit flash-2-replicas --to sfs2014-20160912-00016.txt --time 10s --warmup 2s \\
    --hold-out 3,6,9,10 --output fitted.toml

Least squares of the logarithms of the mean response times, by the method of Nelder and Mead. Every \
trial runs the curve's workload at the loads of the fitted points, in virtual time and with one seed. \
A fit that was interrupted is resumed by the same command.
Exit codes: 0 the fit is good, 1 failed, 2 bad usage or input, 3 the fit is not good: there are not more \
points than free figures, or it did not converge; 130 interrupted by a signal.";

pub(super) const AB_EXAMPLES: &str = "\
Examples:
  plimsoll ab varmail --dir A=/mnt/ext4/t --dir B=/mnt/xfs/t --time 20s
      eight pairs of runs; in each pair, the seed decides which file system is first
  plimsoll ab webserver --dir ./t --set B:nthreads=50 --until 2%
      pairs until the ratio is known to 2 %, at most 100
  plimsoll ab randomread --target A=posix --target 'B=posix:?io=uring' --set nthreads=32 --primary p99
  plimsoll ab varmail --dir /mnt/t --before A='mount -o remount,relatime /mnt' --before B='mount -o remount,noatime /mnt'
  plimsoll ab varmail --dir ./t
      like against like: shows which differences are chance on this machine

A value with A= or B= before it (A: or B: in --set) is for this variant, any other value for both. The answer is the \
ratio of the primary figure, B by A, with a 95 % confidence interval. A pair with a run that is not valid does not count.
Exit codes: 0 at least two pairs count, 1 failed, 2 bad usage or input, 3 fewer pairs count, 130 \
interrupted by a signal.";

pub(super) const CHECK_EXAMPLES: &str = "\
Examples:
  plimsoll check /mnt/t
      eleven steps of five seconds each, in /mnt/t/plimsoll-check, which is removed
  plimsoll check nfs4://server/export
  plimsoll check /mnt/t --time 1s --only fsync --only mail
  plimsoll compare check-before check-after
      two checks, step by step

Sequential and random reads, and random writes, go past the page cache where the file system supports direct I/O. A step \
that the target does not support is left out and named.
Exit codes: 0 all steps are valid, 1 a step failed, 2 bad usage or input, 3 a step is invalid, 130 \
interrupted by a signal.";

pub(super) const PROFILE_EXAMPLES: &str = "\
Examples:
  plimsoll profile fileio --dry-run
      lists the runs of the profile
  plimsoll profile fileio --dir /mnt/test --time 10s
  plimsoll profile my.prof --filesystem ext4=/mnt/ext4 --filesystem xfs=/mnt/xfs --repeat 5
      five runs of each configuration on each file system, compared
  plimsoll profile fileio --filesystem 'nfs=nfs3://server/export' --only randomread2k
  plimsoll profile fileio --print-source > my.prof   a copy to change

A parameter with a list of values runs once per value. A failed run is reported, and the next one \
starts.
Exit codes: 0 all runs are valid, 1 a run failed, 2 bad usage or input, 3 a run is invalid, 130 \
interrupted by a signal.";

pub(super) const FIO_EXAMPLES: &str = "\
Examples:
  plimsoll fio job.fio
      in a fresh directory below the system's temporary directory, or in the `directory` of the jobs
  plimsoll fio --name=r --rw=randread --bs=4k --iodepth=32 --direct=1 --size=1g --runtime=30
  plimsoll fio job.fio --section=write --output-format=json > fio.json
  plimsoll fio job.fio --dry-run
      what the jobs would do, and which of their options have no effect

An option that cannot be honoured is refused with the reason; an option without effect has a note in the report.
Exit codes: 0 valid, 1 failed, 2 bad usage or input, 3 invalid, 130 interrupted by a signal.";

pub(super) const RESUME_EXAMPLES: &str = "\
Examples:
  plimsoll resume plimsoll-results/vda-curve-20260101-120000
      makes the missing runs with the Plan, target and seeds of the series
  plimsoll resume plimsoll-results/fileio-profile-20260101-120000 --allow-commands
      the workload executes commands of the user

Runs that were measured are kept. Exit codes are those of the command that began the series.";

pub(super) const SERVE_EXAMPLES: &str = "\
Examples:
  plimsoll results serve
  plimsoll results serve --results /data/results --listen 127.0.0.1:0
  PLIMSOLL_TOKEN=$(openssl rand -hex 16) plimsoll results serve --listen 0.0.0.0:8080 --allowed-host bench.example

Prints its address and serves until Ctrl-C. It changes results only \
when the user tags, annotates or deletes them in the browser.";

pub(super) const HOSTS_EXAMPLES: &str = "\
Examples:
  plimsoll systems hosts client[01-16] --dir /mnt/test
  plimsoll systems hosts @hosts

Starts this program on each host by ssh, as --hosts of other commands does, and prints a line for each. \
Exits with 1 if a host cannot be used.";

pub(super) const NFS_EXAMPLES: &str = "\
Examples:
  plimsoll systems nfs --listen 127.0.0.1:20490
  plimsoll run fileserver --target 'nfs3://127.0.0.1:20490/?mountport=20490' --time 5s
      in another terminal
  plimsoll systems nfs --reply-delay 5ms --inject-fault read=io:0.001 --inject-fault commit=drop-reply:0.01

The URL of the target is printed. The server runs until Ctrl-C; its files are then lost. Permissions are \
stored but not enforced.
A fault is an NFS status, such as io, stale, nospc or jukebox; drop-reply: the call is executed, but \
no reply is sent; close: the connection is closed; garbage: bytes are sent that are not a reply; \
trailing-bytes: four bytes follow the reply; truncated: its last four bytes are missing.";

pub(super) const WAN_EXAMPLES: &str = "\
Examples:
  plimsoll systems wan --listen 127.0.0.1:22049 --upstream filer:2049 --rtt 100ms
  plimsoll run webserver --target 'nfs3://127.0.0.1:22049/export?mountport=20048'
      in another terminal; MOUNT calls bypass the relay
  plimsoll systems wan --listen 127.0.0.1:22049 --upstream filer:2049 --rtt 40ms --jitter 4ms --bandwidth 100mbit

A relay terminates TCP on both sides: there is no slow start, and no window limits a connection. \
The kernel's netem delays packets, so that both apply: docs/wan.md has its commands.
Ctrl-C stops it and prints its traffic.";

pub(super) const IO500_EXAMPLES: &str = "\
Examples:
  plimsoll io500 config.ini --processes 8
  mpiexec -n 64 plimsoll io500 config.ini
  plimsoll io500 config.ini --mode extended --hosts 'client[01-10]*6'
  plimsoll io500 config.ini --dry-run
      prints the phases, and runs nothing
  plimsoll io500 config.ini --processes 8 --target sim:flash-2-replicas
      eight ranks on a simulated system, in virtual time
  plimsoll io500 config.ini --verify results/io500-suite-20260301-140502/result.txt
  plimsoll resume results/io500-suite-20260301-140502 --processes 8
      continues with the phase that did not end

The configuration's `resultdir` is the parent of the results directory. The result is IO500-style, not an IO500 \
result.
Exit codes: 0 valid, 1 failed, 2 bad usage or input, 3 a score is invalid, 130 interrupted.";
pub(super) const IOR_EXAMPLES: &str = "\
Examples:
  plimsoll ior --processes 4 -a POSIX -b 1g -t 2m -F -e -C -o /mnt/test/easy
  plimsoll ior --processes 4 -w -k -F -b 1g -t 2m -o /mnt/test/easy
  plimsoll ior --processes 4 -r -F -b 4k -t 4k -s 100000 -z -z -C -D 60 -o /mnt/test/easy
      random reads of the files that the run before has kept
  mpiexec -n 8 plimsoll ior -b 47008 -t 47008 -s 1000 -D 30 -O stoneWallingWearOut=1

Plimsoll makes a directory with the name of the test file. `plimsoll md --pattern` has IO500's patterns.";

pub(super) const MDTEST_EXAMPLES: &str = "\
Examples:
  plimsoll mdtest --processes 4 -n 10000 -F -u -d /mnt/test/md
  plimsoll mdtest --processes 4 -I 100 -z 2 -b 5 -L -w 3901 -e 3901 -N 1 -i 3 -d /mnt/test/md
  plimsoll mdtest --processes 4 -C -n 10000 -d /mnt/test/md
  plimsoll mdtest --processes 4 -T -R -n 10000 -d /mnt/test/md
      stat operations in random order, on the files that the run before has left
  mpiexec -n 8 plimsoll mdtest -n 100000 -F -W 30 -d /mnt/test/md

`plimsoll md --pattern` has IO500's patterns, and `plimsoll io500` runs IO500 whole.";

pub(super) const MD_EXAMPLES: &str = "\
Examples:
  plimsoll md
      MD-Workbench's own defaults, in the directory `out`
  plimsoll md --processes 4 --dir /mnt/test -P=3000 -D=10 -I=1000 -R=3
  plimsoll md -i=posix -P=10 -D=5 -I=3 -S=3901 -- -D=/mnt/test/out
      the same options in MD-Workbench's own syntax
  plimsoll md -1 && plimsoll md -2 -w=60 -W && plimsoll md -3
      one phase after the other; mdtest.status stores the position
  plimsoll md --pattern mdtest-hard -n 10000 -w 30 --processes 8
  plimsoll ior --processes 8 -F -b 1g -t 2m
      IOR's command lines
  plimsoll md --processes 8 -P=100 -I=50 -D=2 --target sim:flash-2-replicas
      eight ranks on a simulated system, as workers of one process in virtual time
  plimsoll md --dry-run
      prints the Plan
  plimsoll io500 config.ini --processes 8
      all phases of IO500 with scores; see `plimsoll io500 --help`

Exit codes: 0 valid, 1 failed, 2 bad usage or input, 3 invalid (operations failed), 130 interrupted.";
