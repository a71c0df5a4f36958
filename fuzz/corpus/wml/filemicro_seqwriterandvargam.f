# Writing one file per thread by appends whose size is drawn from a gamma distribution, once.

set $dir=/tmp      # directory the files go to
set $nthreads=1    # number of appending threads and of files
set $cached=false  # false drops the files from the page cache before the run
set $sync=false    # true opens for synchronous data writes (O_DSYNC)
set $count=128k    # number of appends per file
set $iosize=randvar(type=gamma, min=1k, mean=5632, gamma=1500)  # bytes per append (random)

define fileset name=bigfileset, path=$dir, size=0, entries=$nthreads,
               dirwidth=1024, prealloc=100, cached=$cached

define process name=filewriter, instances=1 {
  thread name=filewriterthread, memsize=10m, instances=$nthreads {
    flowop openfile name=openfile1, filesetname=bigfileset, fd=1, dsync=$sync
    flowop appendfile name=appendfile1, dsync=$sync, iosize=$iosize, fd=1, iters=$count
    flowop closefile name=closefile1, fd=1
    flowop finishoncount name=finish, value=1
  }
}
