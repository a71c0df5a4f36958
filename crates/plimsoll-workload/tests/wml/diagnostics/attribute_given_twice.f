define fileset name=files,path=/data,size=1k,filesize=2k,dirwidth=5
