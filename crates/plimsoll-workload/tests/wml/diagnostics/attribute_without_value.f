define fileset name=files,path=/data,entries,dirwidth=5
