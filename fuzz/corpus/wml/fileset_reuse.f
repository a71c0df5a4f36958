# reuse takes an identical tree of an earlier run.
# expect: two runs in one directory both end well; 5 files of 100 bytes; 5 stats in each.

set mode quit alldone

define fileset name=data, path=/tmp, entries=5, dirwidth=100, dirgamma=0, size=100, prealloc=100, reuse, trusttree

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop statfile name=stat1, filesetname=data, iters=5
    flowop finishoncount name=end, value=1
  }
}

run
