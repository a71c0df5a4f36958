# Files come first, then leaf directories, in the next positions of the root.
# expect: 3 files in data/00000001 and 3 empty directories in data/00000002.

set mode quit alldone

define fileset name=data, path=/tmp, entries=3, leafdirs=3, dirwidth=100, dirgamma=0, size=50,
               prealloc

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop statfile name=stat1, filesetname=data
    flowop finishoncount name=end, value=1
  }
}

run
