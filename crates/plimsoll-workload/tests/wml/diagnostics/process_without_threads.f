define fileset name=files,path=/data,entries=10,dirwidth=5,prealloc
define process name=p {
}
run 10
