# hog stores to memory and touches no file.
# expect: 3 rounds of 5 hogs beside 3 stats; the summary counts the stats only.

set mode quit alldone

define fileset name=data, path=/tmp, entries=2, dirwidth=100, dirgamma=0, size=10, prealloc=100

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop hog name=think, value=1000, iters=5
    flowop statfile name=stat1, filesetname=data
    flowop finishoncount name=end, value=3
  }
}

run
