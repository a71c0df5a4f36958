# createfile takes every missing file in turn, and the worker ends when there is none.
# expect: 10 files 00000001 to 00000010 of 0 bytes; 10 creates; 10 closes.

set mode quit alldone

define fileset name=data, path=/tmp, entries=10, dirwidth=100, dirgamma=0, size=1000

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop createfile name=create1, filesetname=data, fd=1
    flowop closefile name=close1, fd=1
  }
}

run
