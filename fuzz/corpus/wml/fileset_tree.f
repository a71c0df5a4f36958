# Exact widths make a balanced tree: ln 16 / ln 4 = 2 levels below the root.
# expect: 16 files of 50 bytes, 4 in each of 4 directories.

set mode quit alldone

define fileset name=data, path=/tmp, entries=16, dirwidth=4, dirgamma=0, size=50, prealloc

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop statfile name=stat1, filesetname=data
    flowop finishoncount name=end, value=1
  }
}

run
