# Making many empty directories until all are made.

set $dir=/tmp          # directory the tree goes to
set $ndirs=10000       # number of directories to make
set $meandirwidth=100  # mean entries per directory
set $nthreads=16       # number of threads

set mode quit firstdone

define fileset name=bigfileset, path=$dir, size=0, leafdirs=$ndirs,
               dirwidth=$meandirwidth

define process name=dirmake, instances=1 {
  thread name=dirmaker, memsize=1m, instances=$nthreads {
    flowop makedir name=makedir1, filesetname=bigfileset
  }
}
