# testrandvar draws its value and reports mean and deviation at the end.
# expect: 100 draws of a variable that is always 4096; the output holds 4096.

set mode quit alldone

set $x=cvar(type=cvar-uniform,parameters=lower:4096;upper:4096)

define fileset name=data, path=/tmp, entries=2, dirwidth=100, dirgamma=0, size=10, prealloc=100

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop testrandvar name=draw, value=$x, iters=100
    flowop statfile name=stat1, filesetname=data
    flowop finishoncount name=end, value=1
  }
}

run
