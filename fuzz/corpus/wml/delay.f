# delay sleeps whole seconds.
# expect: 1 delay of 1 s, then 1 stat: the run takes 1 to 4 s.

set mode quit alldone

define fileset name=data, path=/tmp, entries=2, dirwidth=100, dirgamma=0, size=10, prealloc=100

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop delay name=sleep1, value=1
    flowop statfile name=stat1, filesetname=data
    flowop finishoncount name=end, value=1
  }
}

run
