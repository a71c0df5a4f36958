# A random iosize is drawn anew for every operation.
# expect: 10 appends of 100, or 200, or 300 ... bytes: each is 100 to 1000, together 1000 to 10000, and the file has as many.

set mode quit alldone

set $step=cvar(type=cvar-uniform,parameters=lower:100;upper:1000, round=100)

define file name=data, path=/tmp, size=0, prealloc

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop appendfile name=append1, filename=data, iosize=$step, iters=10
    flowop finishoncount name=end, value=1
  }
}

run
