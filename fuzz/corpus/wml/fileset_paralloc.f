# paralloc makes the same files.
# expect: 20 files of 3000 bytes.

set mode quit alldone

define fileset name=data, path=/tmp, entries=20, dirwidth=100, dirgamma=0, size=3000, prealloc=100, paralloc

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop statfile name=stat1, filesetname=data
    flowop finishoncount name=end, value=1
  }
}

run
