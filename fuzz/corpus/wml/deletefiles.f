# Deleting many small files until none is left.

set $dir=/tmp          # directory the files go to
set $nfiles=50000      # number of files to delete
set $meandirwidth=100  # mean entries per directory
set $meanfilesize=16k  # size of a file (bytes)
set $nthreads=16       # number of deleting threads

set mode quit alldone

define fileset name=bigfileset, path=$dir, size=$meanfilesize, entries=$nfiles,
               dirwidth=$meandirwidth, prealloc=100, paralloc

define process name=filedelete, instances=1 {
  thread name=filedeletethread, memsize=10m, instances=$nthreads {
    flowop deletefile name=deletefile1, filesetname=bigfileset
  }
}
