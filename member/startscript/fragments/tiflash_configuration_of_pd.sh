# The number of the pod, and where PD is, are known here only.
for file in config proxy; do
    sed "s|POD_NUM|${POD_NAME##*-}|g; s|PD_ADDR|$PD|g" "/etc/tiflash/${file}_templ.toml" >"/data0/$file.toml"
done
