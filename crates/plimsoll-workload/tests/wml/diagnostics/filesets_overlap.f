define fileset name=a,path=/data,entries=10,dirwidth=5
define fileset name=b,path=/data/a,entries=10,dirwidth=5
define process name=p {
  thread name=t {
    flowop statfile name=s,filesetname=a
  }
}
