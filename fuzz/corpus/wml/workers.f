# Every instance of every process and thread is a worker of its own.
# expect: 2 processes of 3 threads: 6 workers that each make one file.

set mode quit alldone

define fileset name=data, path=/tmp, entries=10, dirwidth=100, dirgamma=0, size=10

define process name=worker, instances=2 {
  thread name=workerthread, memsize=1m, instances=3 {
    flowop createfile name=create1, filesetname=data, fd=1
    flowop writewholefile name=write1, fd=1
    flowop closefile name=close1, fd=1
    flowop finishoncount name=end, value=1
  }
}

run
