# deletefile ends the worker when no file is left; the directories stay.
# expect: 10 deletes by two workers; no file left; the directory data/00000001 is left.

set mode quit alldone

define fileset name=data, path=/tmp, entries=10, dirwidth=100, dirgamma=0, size=100, prealloc=100

define process name=worker {
  thread name=workerthread, memsize=1m, instances=2 {
    flowop deletefile name=delete1, filesetname=data
  }
}

run
