# finishoncount without a target counts all operations of the run.
# expect: 6 opens and 6 closes: the worker ends when 12 operations are done.

set mode quit alldone

define fileset name=data, path=/tmp, entries=2, dirwidth=100, dirgamma=0, size=10, prealloc=100

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop openfile name=open1, filesetname=data, fd=1
    flowop closefile name=close1, fd=1
    flowop finishoncount name=end, value=12
  }
}

run
