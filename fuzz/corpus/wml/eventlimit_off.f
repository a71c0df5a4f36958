# Without an event rate the limits do nothing.
# expect: 2000 stats through all four limits in less than 5 s.

set mode quit alldone

eventgen rate=0

define fileset name=data, path=/tmp, entries=8, dirwidth=100, dirgamma=0, size=10, prealloc=100

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop statfile name=stat1, filesetname=data
    flowop eventlimit name=limit1
    flowop iopslimit name=limit2
    flowop opslimit name=limit3
    flowop bwlimit name=limit4
    flowop finishoncount name=end, value=2000, target=stat1
  }
}

run
