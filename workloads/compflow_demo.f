# A demonstration of composite flowops: one program of nested parts, used on three filesets.

set $dir=/tmp         # directory the files go to
set $nfiles=700       # number of files in each of the three sets
set $meandirwidth=20  # mean entries per directory
set $filesize=128k    # size of a file (bytes)
set $nthreads=10      # threads for each of the three sets
set $meaniosize=16k   # most bytes an append adds

define fileset name=bigfileset, path=$dir, size=$filesize, entries=$nfiles,
               dirwidth=$meandirwidth, prealloc=80, paralloc
define fileset name=u2fileset, path=$dir, size=$filesize, entries=$nfiles,
               dirwidth=$meandirwidth, prealloc=80, paralloc
define fileset name=u3fileset, path=$dir, size=$filesize, entries=$nfiles,
               dirwidth=$meandirwidth, prealloc=80, paralloc

# Read one file of the set and overwrite another with as many bytes.
define flowop name=readwrite, $fileset {
  flowop openfile name=openfile4, filesetname=$fileset, fd=1
  flowop openfile name=openfile5, filesetname=$fileset, fd=2
  flowop readwholefile name=readfile1, fd=1
  flowop writewholefile name=writefile1, fd=2, srcfd=1
  flowop closefile name=closefile4, fd=1
  flowop closefile name=closefile5, fd=2
}

# Make a file, rewrite some, delete one, examine one.
define flowop name=dowork, $filesetnm, $rwiters {
  flowop createfile name=createfile1, filesetname=$filesetnm, fd=1
  flowop appendfilerand name=appendfilerand1, iosize=$meaniosize, fd=1
  flowop closefile name=closefile1, fd=1
  flowop readwrite name=rw1, iters=$rwiters, $fileset=$filesetnm
  flowop deletefile name=deletefile1, filesetname=$filesetnm
  flowop statfile name=statfile1, filesetname=$filesetnm
}

define process name=filereader1, instances=1 {
  thread name=user1, memsize=10m, instances=$nthreads {
    flowop dowork name=dowork1, iters=1, $rwiters=5, $filesetnm=bigfileset
  }
  thread name=user2, memsize=10m, instances=$nthreads {
    flowop dowork name=dowork2, iters=1, $rwiters=4, $filesetnm=u2fileset
  }
  thread name=user3, memsize=10m, instances=$nthreads {
    flowop dowork name=dowork3, iters=1, $rwiters=3, $filesetnm=u3fileset
  }
}
