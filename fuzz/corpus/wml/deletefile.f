# deletefile takes the existing files in turn, until a count is reached.
# expect: 4 deletes; files 00000001 to 00000004 are gone, 00000005 to 00000010 are left with 100 bytes each.

set mode quit alldone

define fileset name=data, path=/tmp, entries=10, dirwidth=100, dirgamma=0, size=100, prealloc=100

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop deletefile name=delete1, filesetname=data
    flowop finishoncount name=end, value=4, target=delete1
  }
}

run
