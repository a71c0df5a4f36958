define fileset name=files,path=/data,entries=10,dirwidth=5,prealloc
flowop read name=r,filesetname=files,iosize=4k
