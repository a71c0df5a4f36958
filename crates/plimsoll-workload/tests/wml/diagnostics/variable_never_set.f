set $nfiles=10
define fileset name=files,path=/data,entries=$nfile,dirwidth=5
define process name=p {
  thread name=t {
    flowop read name=r,filesetname=files,iosize=4k
  }
}
