# Writing one file by small appends and flushing it after every batch of them.

set $dir=/tmp         # directory the file goes to
set $iosize=8k        # bytes per append
set $writeiters=1024  # appends in a batch
set $fsynccount=128   # flushes after which the run ends

set mode quit firstdone

define file name=bigfile, path=$dir, size=0, prealloc

define process name=filewriter, instances=1 {
  thread name=filewriterthread, memsize=10m, instances=1 {
    flowop appendfile name=appendfile1, filename=bigfile, iosize=$iosize, iters=$writeiters
    flowop fsync name=sync-file
    flowop finishoncount name=finish, value=$fsynccount, target=sync-file
  }
}

run
