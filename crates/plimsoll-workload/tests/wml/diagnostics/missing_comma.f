define fileset name=files path=/data,entries=10,dirwidth=5
