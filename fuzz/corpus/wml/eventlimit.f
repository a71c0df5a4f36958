# eventlimit takes one event per call, and all workers share them.
# expect: at 50 events a second about 100 stats in 2 s by three workers: 70 to 115.

set mode quit timeout
eventgen rate=50

define fileset name=data, path=/tmp, entries=8, dirwidth=100, dirgamma=0, size=10, prealloc=100

define process name=worker {
  thread name=workerthread, memsize=1m, instances=3 {
    flowop statfile name=stat1, filesetname=data
    flowop eventlimit name=limit1
  }
}

run 2
