# listdir lists a directory of the tree as one operation and changes nothing.
# expect: 5 operations; the 10 files are left with 10 bytes each.

set mode quit alldone

define fileset name=data, path=/tmp, entries=10, dirwidth=100, dirgamma=0, size=10, prealloc=100

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop listdir name=list1, filesetname=data
    flowop finishoncount name=end, value=5, target=list1
  }
}

run
